"""asv suite."""
