package drops

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"dropbell/domain/message"
	"dropbell/domain/staff"
	"dropbell/domain/staff/alert"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/views/ui"
	"dropbell/web/console/shell"
)

const (
	// shownTasks is how many tasks of a kind the first page names.
	shownTasks = 5
	// textsAhead is how long before the opening of a drop the first page names missing texts.
	textsAhead = 7 * 24 * time.Hour
)

// elsewhere are the kinds of alerts that the first page reports already: it reads their conditions
// itself.
var elsewhere = []alert.Kind{alert.Approval, alert.Late, alert.DeadLetters, alert.Endpoint, alert.Budget}

// tasks returns the work that waits for the member of the request: campaigns to approve, alerts
// that the member has not read, and drops without texts of their own.
func (h *handlers) tasks(r *http.Request, drops []droppages.Drop) ([]droppages.Attention, error) {
	list, err := h.approvals(r)
	if err != nil {
		return nil, err
	}
	told, err := h.lasting(r)
	if err != nil {
		return nil, err
	}
	unwritten, err := h.unwritten(r, drops)
	return slices.Concat(list, told, unwritten), err
}

func (h *handlers) approvals(r *http.Request) (list []droppages.Attention, err error) {
	asked, err := h.Approvals.Awaiting(r.Context(), shell.Actor(r), shownTasks)
	for _, a := range asked {
		list = append(list, droppages.Attention{Tone: ui.Info, URL: fmt.Sprintf("/campaigns/%d/approval", a.CampaignID),
			Text: shell.Frame(r).Locale.N("task.approval", a.Reach.Users, a.Name, a.AskedName)})
	}
	return list, err
}

// lasting are the member's unread alerts that the page does not report anyway.
func (h *handlers) lasting(r *http.Request) (list []droppages.Attention, err error) {
	told, err := h.Alerts.Lasting(r.Context(), shell.Frame(r).Member)
	for _, a := range told {
		if slices.Contains(elsewhere, a.Kind) || a.Kind == alert.Channel && a.Detail == "" || len(list) == shownTasks {
			continue
		}
		tone, url := ui.Warn, a.Path
		if a.Kind == alert.SoldOut {
			tone = ui.Info
		}
		if url == "" {
			url = "/alerts"
		}
		list = append(list, droppages.Attention{Tone: tone, URL: url, Text: a.Text(shell.Frame(r).Locale.Tag)})
	}
	return list, err
}

// unwritten are the drops that open soon and whose reminders have the built-in text on every
// channel. Several drops are one entry.
func (h *handlers) unwritten(r *http.Request, drops []droppages.Drop) (list []droppages.Attention, err error) {
	by, now := shell.Actor(r), h.Now()
	for _, d := range drops {
		if !by.Can(staff.ManageTemplates, d.ShopNumber) || d.State(now) != template.Scheduled || d.OpensAt.Sub(now) > textsAhead {
			continue
		}
		book, err := h.Texts.Book(r.Context(), by, message.Place{Shop: d.ShopNumber, Template: d.ID})
		if err != nil {
			return nil, err
		}
		own := slices.ContainsFunc(message.Channels(), func(c message.Channel) bool {
			return book.Find(message.Reminder, c, shell.Frame(r).Locale.Tag).Level != message.BuiltIn
		})
		if !own {
			list = append(list, droppages.Attention{Tone: ui.Info, URL: "/templates/" + strconv.FormatInt(d.ID, 10) + "/message",
				Text: shell.Say(r, "task.texts", d.Name)})
		}
	}
	if n := len(list); n > 1 {
		list = []droppages.Attention{{Tone: ui.Info, URL: "/templates?state=scheduled", Text: shell.Frame(r).Locale.N("task.texts_of", int64(n))}}
	}
	return list, nil
}
