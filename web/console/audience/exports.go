package audience

import (
	"net/http"
	"strconv"
	"strings"

	"dropbell/domain/delivery"
	"dropbell/domain/segment"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/shell"
)

// exportUsers sends all users that the search finds. Since contacts leave the
// system here, it needs the permission to manage users, and is recorded.
func (h *handlers) exportUsers(w http.ResponseWriter, r *http.Request) error {
	text := userSearch(r)
	if text == "" {
		shell.Redirect(w, r, "/users")
		return nil
	}
	if err := h.Audit.Record(r.Context(), staff.Entry{Actor: shell.Actor(r), Action: "user.export", ObjectKind: "user", After: map[string]string{"search": text}}); err != nil {
		return err
	}
	head := []string{"id", "name", "email", "phone", "locale", "timezone", "opted_out", "phone_verified"}
	return h.Export(w, r, "users", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *user.User) ([]user.User, error) {
			after := user.ID(0)
			if last != nil {
				after = last.ID
			}
			return h.usersFound(r, text, after, shell.ExportPage)
		}, func(u user.User) error {
			return s.Row(int64(u.ID), u.Name, u.Email, u.Phone, u.Locale, u.Timezone, optedOut(u), strconv.FormatBool(!u.PhoneVerifiedAt.IsZero()))
		})
	})
}

// optedOut lists the channels that a user has opted out of.
func optedOut(u user.User) (names string) {
	for _, ch := range delivery.AllChannels() {
		if u.OptOuts&(1<<ch) != 0 {
			names += " " + ch.String()
		}
	}
	return names
}

// exportSegments sends every segment and list that the search finds.
func (h *handlers) exportSegments(w http.ResponseWriter, r *http.Request) error {
	q := segment.Query{Search: strings.TrimSpace(r.FormValue("q")), Limit: shell.ExportPage}
	head := []string{"id", "name", "kind", "members", "counted_at", "version", "created_by", "created_at", "updated_at"}
	return h.Export(w, r, "segments", head, func(s *shell.Sheet) error {
		return shell.InPages(func(last *segment.Segment) ([]segment.Segment, error) {
			if last != nil {
				q.After.UpdatedAt, q.After.ID = last.UpdatedAt, last.ID
			}
			return h.Segments.Segments(r.Context(), shell.Actor(r), q)
		}, func(g segment.Segment) error {
			return s.Row(g.ID, g.Name, string(g.Kind), g.Members, g.CountedAt, g.Version, g.CreatedBy, g.CreatedAt, g.UpdatedAt)
		})
	})
}
