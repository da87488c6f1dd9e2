package pgtest

import (
	"time"

	workdb "dropbell/adapters/postgres/work"
	"dropbell/domain/staff"
)

// Clerk is a marketer.
var Clerk = staff.Actor{Label: "staff:7", Name: "Ada Okafor", Role: staff.Marketer}

// Operator is a member of staff with the role operator.
var Operator = staff.Actor{Label: "staff:3", Name: "Olga", Role: staff.Operator}

// Day is a day without a change of clocks.
const Day = 24 * time.Hour

// KeepTen keeps deliveries for ten days, and other rows for other times.
var KeepTen = workdb.Retention{Delivery: 10 * Day, Audit: 20*Day + time.Hour, Idempotency: Day, Events: 7*Day + time.Hour}
