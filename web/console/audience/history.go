package audience

import (
	"net/http"
	"net/url"
	"slices"

	"dropbell/domain/timeline"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	"dropbell/web/console/shell"
)

// A customer's page begins with historyLines lines of the timeline; a press shows olderLines more.
const historyLines, olderLines = 7, 20

// fillHistory reads the lines of the timeline that the address names; unknown values name the newest
// lines of all kinds.
func (h *handlers) fillHistory(r *http.Request, id user.ID, p *audiencepages.History) error {
	if g := timeline.Group(r.FormValue("show")); slices.Contains(timeline.Groups(), g) {
		p.Group = g
	}
	q := timeline.Query{UserID: id, Group: p.Group, After: timeline.ParseCursor(r.FormValue("past")), Limit: historyLines}
	if !q.After.IsZero() {
		q.Limit = olderLines
	}
	page, err := h.Timeline.Page(r.Context(), shell.Actor(r), q)
	if err != nil {
		return err
	}
	p.Lines, p.More = page.Lines, olderLines
	link := func(past timeline.Cursor) string {
		v := url.Values{"show": {string(p.Group)}, "past": {past.String()}}
		return "/users/" + id.String() + "?" + v.Encode()
	}
	if !q.After.IsZero() {
		p.First = link(timeline.Cursor{}) + "#timeline"
	}
	if shell.Partial(r) {
		p.Before = q.After.At
	}
	if !page.Next.IsZero() {
		p.Next = link(page.Next)
	}
	return nil
}
