"""The admin client. Each part manages one kind of thing: topics, settings, groups and so on."""
