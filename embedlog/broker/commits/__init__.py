"""The owner's part of commits of staged files: it looks into the inbox, and adopts."""
