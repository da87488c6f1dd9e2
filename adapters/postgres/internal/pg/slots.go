package pg

import (
	"github.com/jackc/pgx/v5"

	"dropbell/domain/reminder"
)

// SlotDueAt is when the slot s is due; see table slots.
const SlotDueAt = `s.due_at - s.round * interval '1 microsecond'`

// SlotColumns are the columns of a slot s; see [SlotFields].
const SlotColumns = `s.id, s.template_id, s.slot, s.opens_at, ` + SlotDueAt + `, coalesce(s.planned_at, ` + SlotDueAt + `), s.round, s.state, coalesce(s.stop_reason, ''), s.fired_at, s.cut_at, s.finished_at, coalesce(s.doors, 0)`

// OfOpening is the condition that the slot s belongs to the present opening of the template t, or of
// one of its doors.
const OfOpening = `(s.opens_at = t.opens_at or s.doors > 0 and doors_at(s.template_id, s.opens_at) <> 0)`

// ScanSlot reads [SlotColumns].
func ScanSlot(row pgx.CollectableRow) (reminder.Slot, error) {
	var s reminder.Slot
	return s, row.Scan(SlotFields(&s)...)
}

// SlotFields are the destinations of [SlotColumns].
func SlotFields(s *reminder.Slot) []any {
	return []any{&s.ID, &s.TemplateID, &s.Slot, &s.OpensAt, &s.DueAt, &s.PlannedAt, &s.Round, &s.State, &s.StopReason, &s.FiredAt, &s.CutAt, &s.FinishedAt, &s.Doors}
}
