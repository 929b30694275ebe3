"""asv suite of the lesson."""
