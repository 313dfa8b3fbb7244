"""How a length of time is printed."""


def duration(seconds: float) -> str:
    """Return a length of time as a person writes it: `12 s`, `45 min`, `3 h 20 min`."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
