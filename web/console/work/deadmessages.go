package work

import (
	"context"
	"fmt"
	"net/http"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listDeadMessages(w http.ResponseWriter, r *http.Request) error {
	var p workpages.DeadMessages
	var err error
	p.List, p.Paged, err = shell.List[staff.DeadMessage, int64]{Keys: shell.IDs(), Read: func(before int64, limit int) ([]staff.DeadMessage, error) {
		return h.DeadMessages.Open(r.Context(), before, limit)
	}, KeyOf: func(m staff.DeadMessage) int64 { return m.ID }}.Page(r)
	if err != nil {
		return err
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

func (h *handlers) deadMessageQuestion(r *http.Request, id int64) pageparts.Confirmation {
	step, kind := r.PathValue("step"), "primary"
	if step == "discard" {
		kind = "danger"
	}
	return pageparts.Confirmation{Active: "dead_messages", Crumbs: []ui.Crumb{{Label: shell.Say(r, "nav.dead_messages"), URL: "/dead-messages"}},
		ConfirmProps: ui.ConfirmProps{Title: shell.Say(r, "confirm."+step+".title"), Points: []string{shell.Say(r, "confirm."+step+".1")}, NoReason: true,
			Action: fmt.Sprintf("/dead-messages/%d/%s", id, step), Cancel: "/dead-messages", Submit: shell.Say(r, "dead."+step), Kind: kind}}
}

func (h *handlers) confirmDeadMessage(w http.ResponseWriter, r *http.Request, id int64) error {
	return h.Ask(w, r, http.StatusOK, h.deadMessageQuestion(r, id))
}

func (h *handlers) settleDeadMessage(w http.ResponseWriter, r *http.Request, id int64) error {
	settle, text := h.DeadMessages.Discard, "dead.discarded_now"
	if r.PathValue("step") == "requeue" {
		settle, text = h.DeadMessages.Requeue, "dead.requeued_now"
	}
	err := settle(r.Context(), shell.Actor(r), id)
	if fault.KindOf(err) == fault.Invalid || fault.KindOf(err) == fault.NotFound {
		p := h.deadMessageQuestion(r, id)
		p.Error = ui.FaultText(r.Context(), err)
		return h.Ask(w, r, http.StatusConflict, p)
	}
	if err != nil {
		return err
	}
	return h.Done(w, r, "/dead-messages", ui.Good, shell.Say(r, text))
}

// DeadMessages keeps the events that handlers gave up on.
type DeadMessages interface {
	// Open returns events that were neither replayed nor discarded, the newest first: events with
	// an id less than before; 0 = from the newest event on.
	Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error)
	Requeue(ctx context.Context, by staff.Actor, id int64) error
	Discard(ctx context.Context, by staff.Actor, id int64) error
}
