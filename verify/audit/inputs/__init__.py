"""The inputs that hurt: named, seeded classes of cases."""
