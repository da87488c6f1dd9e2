package work

import (
	"context"
	"fmt"
	"net/http"
	"strconv"

	"dropbell/domain/fault"
	"dropbell/domain/staff"
	pageparts "dropbell/views/pages/parts"
	workpages "dropbell/views/pages/work"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

func (h *handlers) listDeadMessages(w http.ResponseWriter, r *http.Request) error {
	before, _ := strconv.ParseInt(r.FormValue("before"), 10, 64) // nonsense is the beginning
	list, err := h.DeadMessages.Open(r.Context(), max(0, before), shell.PageSize+1)
	if err != nil {
		return err
	}
	p := workpages.DeadMessages{List: list[:min(len(list), shell.PageSize)]}
	if len(list) > shell.PageSize {
		p.Next = shell.WithQuery(r, "before", strconv.FormatInt(p.List[shell.PageSize-1].ID, 10))
	}
	if before > 0 {
		p.First = shell.WithQuery(r, "before", "")
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

func (h *handlers) confirmDeadMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	return h.Ask(w, r, http.StatusOK, h.deadMessageQuestion(r, id))
}

func (h *handlers) settleDeadMessage(w http.ResponseWriter, r *http.Request) error {
	id, err := shell.PathID(r)
	if err != nil {
		return err
	}
	settle, text := h.DeadMessages.Discard, "dead.discarded_now"
	if r.PathValue("step") == "requeue" {
		settle, text = h.DeadMessages.Requeue, "dead.requeued_now"
	}
	err = settle(r.Context(), shell.Actor(r), id)
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
	// Open returns events that were neither replayed nor discarded, the newest
	// first: those with an id less than before, 0 = from the newest on.
	Open(ctx context.Context, before int64, limit int) ([]staff.DeadMessage, error)
	Requeue(ctx context.Context, by staff.Actor, id int64) error
	Discard(ctx context.Context, by staff.Actor, id int64) error
}
