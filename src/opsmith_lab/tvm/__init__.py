"""Programs in TVMScript by schedules: loops as blocks (`blocks`), what MetaSchedule makes of them (`space`), texts."""
