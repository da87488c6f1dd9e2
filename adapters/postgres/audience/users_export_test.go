package audience

// FindSQL is the statement with which [Users.Find] looks for a rare beginning.
func FindSQL(column string) string { return matches(begins(column)) }

// SuggestSQL is the statement of [Users.Suggest].
func SuggestSQL(contacts bool) string { return suggestSQL(contacts) }

// TimelineSQL is timelineSQL.
const TimelineSQL = timelineSQL
