"""Records of any lengths, by table look-ups and numpy."""
