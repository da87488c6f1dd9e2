package postgres

import (
	"github.com/jackc/pgx/v5"

	"dropbell/domain/reminder"
)

// dueAt is when the slot s is due; see migration 36.
const dueAt = `s.due_at - s.round * interval '1 microsecond'`

const slotColumns = `s.id, s.template_id, s.slot, s.opens_at, ` + dueAt + `, coalesce(s.planned_at, ` + dueAt + `), s.round, s.state, coalesce(s.stop_reason, ''), s.fired_at, s.cut_at, s.finished_at`

func scanSlot(row pgx.CollectableRow) (reminder.Slot, error) {
	var s reminder.Slot
	return s, row.Scan(slotFields(&s)...)
}

func slotFields(s *reminder.Slot) []any {
	return []any{&s.ID, &s.TemplateID, &s.Slot, &s.OpensAt, &s.DueAt, &s.PlannedAt, &s.Round, &s.State, &s.StopReason, &s.FiredAt, &s.CutAt, &s.FinishedAt}
}
