"""The work log of a home: notes, hours, premortems, what may be decided now, alerts."""
