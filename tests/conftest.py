"""Generated tests are judged by what they find, and not by how busy the machine is."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "allot", parent=settings.default, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("allot")
