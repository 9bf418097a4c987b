"""The admin client: one part for each kind of thing that it manages."""
