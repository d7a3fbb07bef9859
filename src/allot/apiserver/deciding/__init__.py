"""What a write is decided on, beside the object itself.

    context       one attempt at one write: who, when, what else was read, what else must be written
    contexts      opens the context of each attempt
    metadata      what the server itself writes into metadata, and what it checks there
    expressions   what is wrong with a new CEL expression, in the words of a field error
    rulebook      the rules that a custom resource definition writes into its schema
    pools         which slices make up each pool, and how a write proves that this is current

The rules of a kind, admission and the write path share it.
"""
