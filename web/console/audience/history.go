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

// historyLines is how many lines of the timeline a page shows.
const historyLines = 25

// fillHistory reads the page of the timeline that the address names; unknown values name the newest
// lines of all kinds.
func (h *handlers) fillHistory(r *http.Request, id user.ID, p *audiencepages.History) error {
	if g := timeline.Group(r.FormValue("show")); slices.Contains(timeline.Groups(), g) {
		p.Group = g
	}
	q := timeline.Query{UserID: id, Group: p.Group, After: timeline.ParseCursor(r.FormValue("past")), Limit: historyLines}
	page, err := h.Timeline.Page(r.Context(), shell.Actor(r), q)
	if err != nil {
		return err
	}
	p.Lines = page.Lines
	link := func(past timeline.Cursor) string {
		v := url.Values{"show": {string(p.Group)}, "past": {past.String()}}
		return "/users/" + id.String() + "?" + v.Encode() + "#timeline"
	}
	if !q.After.IsZero() {
		p.First = link(timeline.Cursor{})
	}
	if !page.Next.IsZero() {
		p.Next = link(page.Next)
	}
	return nil
}
