"""Objects on their way to the store and back.

    repository   where objects lie in the store, and how they are found there
    stored       from the bytes of the store to an object
    pending      several writes that the store will be given as one
    recent       the objects that this server wrote last, decoded
    examined     what lies in an embedded store is looked at once, before it is trusted
    trouble      what a store could not do, in the words of the API

The lowest part of the server: it uses no other.
"""
