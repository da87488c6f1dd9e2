package drops

import (
	"context"
	"net/http"
	"time"

	"dropbell/domain/reminder"
	"dropbell/web/api/pipeline"
)

// Timeline is the past and planned history of one user's reminders of one drop.
type Timeline struct {
	Reservation Reservation `json:"reservation"`
	Steps       []Step      `json:"steps" nullable:"false" doc:"In the order of time; expected steps come last."`
	// RowsRemovedAt is absent while the rows are there.
	RowsRemovedAt *time.Time `json:"rows_removed_at,omitempty" doc:"When the drop's reservations and outcomes were removed after their retention: the steps that they told are missing."`
}

// Step is one thing that happened or is expected.
type Step struct {
	At        time.Time  `json:"at" doc:"When it happened, or will."`
	Kind      string     `json:"kind" enum:"reserved,changed,withdrawn,published,opening_moved,paused,resumed,closed,cancelled,fired,announced,tried,outcome,claimed,coupon_locked,coupon_used,coupon_released,coupon_timed_out,coupon_refunded,coupon_expired,coupon_revoked,suspended,appealed,restored,waiting,offered,lapsed,left_waitlist,waitlist_skipped,door,no_door,household,entered,struck,drawn,draw_offered,draw_accepted,draw_lapsed,draw_refused,expected" doc:"door is the opening of the user's door, with its name as reason; a user with no_door belongs to none; household: other users of the household have coupons, as many as the reason says, such as 2/2. entered, struck and drawn are steps of an entry in a draw; waiting has as reason roughly how many users are before one who still waits (under_10, under_100, under_1000, more); drawn has the reason won or lost, and score / cutoff as detail; draw_refused is a winner who got no coupon, with the reason; entered has the door as reason and the weight as detail."`
	PlannedAt *time.Time `json:"planned_at,omitempty" doc:"When it should have happened."`
	Channel   string     `json:"channel,omitempty" example:"app"`
	Minutes   int        `json:"minutes,omitempty" example:"10"`
	Message   string     `json:"message,omitempty" enum:"reminder,correction,cancelled,notice,waitlist,offer,won,lost" doc:"The kind of message; notice: before a coupon expires; waitlist: of a coupon that the waitlist gave; offer: of a coupon that it offers; won and lost: of the result of a draw."`
	BatchID   string     `json:"batch_id,omitempty" example:"17"`
	CouponID  string     `json:"coupon_id,omitempty" example:"17"`
	OrderID   string     `json:"order_id,omitempty" doc:"The order for which the coupon was locked, used or given back." example:"A-1001"`
	Outcome   string     `json:"outcome,omitempty" enum:"sent,recovered,failed,skipped,expired,dead,discarded" doc:"recovered: sent after at least one failure; sent with the reason quiet_hours: at their end."`
	Reason    string     `json:"reason,omitempty" example:"opted_out"`
	Detail    string     `json:"detail,omitempty" doc:"The provider's last answer."`
	Attempts  int        `json:"attempts,omitempty"`
	Reported  string     `json:"reported,omitempty" enum:"delivered,bounced,soft_bounced,complained" doc:"The provider's report after it had taken the message: soft_bounced for a reason that may pass, complained as spam."`
	From      *time.Time `json:"from,omitempty" doc:"The opening before a move."`
	To        *time.Time `json:"to,omitempty" doc:"The opening after a move."`
}

func (h *handlers) explainRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Route{Method: http.MethodGet, Path: "/reservations/{template_id}/explain", ID: "explain-reservation",
		Summary: "Explain the outcomes of the user's reminders",
		Description: "The whole timeline with planned and actual instants: reserved, changed, opening moved, fired, attempts with the " +
			"provider's answer, outcome and reason; steps still to come have the kind expected.",
		Codes: []string{"template_not_found", "not_reserved", "rows_removed"}}, h.explain)
}

func (h *handlers) explain(ctx context.Context, in *struct {
	ID string `path:"template_id" pattern:"^[1-9][0-9]{0,18}$"`
}) (*struct{ Body Timeline }, error) {
	id, err := pipeline.ParseID("path.template_id", in.ID)
	if err != nil {
		return nil, err
	}
	t, err := h.Explainer.Explain(ctx, pipeline.UserOf(ctx), id)
	if err != nil {
		return nil, err
	}
	return &struct{ Body Timeline }{Timeline{reservationJSON(t.View), pipeline.Each(t.Steps, stepJSON), t.RowsRemovedAt}}, nil
}

// stepJSON leaves out the staff member of the step: users need not know the staff.
func stepJSON(s reminder.Step) Step {
	j := Step{At: s.At, Kind: string(s.Kind), PlannedAt: s.Planned, OrderID: s.OrderID, Outcome: string(s.Outcome), Reason: s.Reason,
		Detail: s.Detail, Attempts: s.Attempts, Reported: string(s.Reported), From: s.From, To: s.To}
	if s.Reminder != nil {
		j.Channel, j.Minutes = s.Reminder.Channel.String(), s.Reminder.Slot.Minutes()
	}
	if s.Message != "" {
		j.Message = string(s.Message)
	}
	if s.CouponID != 0 {
		j.CouponID = pipeline.Decimal(s.CouponID)
	}
	if s.BatchID != 0 {
		j.BatchID = pipeline.Decimal(s.BatchID)
	}
	return j
}
