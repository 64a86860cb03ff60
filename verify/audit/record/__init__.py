"""What certifications leave for later ones: a journal of steps already judged, and finished certificates."""
