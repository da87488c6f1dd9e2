package access

import (
	"net/http"
	"strings"

	"dropbell/domain/staff"
	"dropbell/web/console/shell"
)

// exportStaff sends all members.
func (h *handlers) exportStaff(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Staff.Members(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	return shell.FileOf("staff", []string{"id", "email", "name", "role", "shops", "created_at", "disabled_at"}, func(m staff.Member) []any {
		return []any{m.ID, m.Email, m.Name, string(m.Role), joinShops(m.Shops), m.CreatedAt, m.DisabledAt}
	}).Send(h.Shell, w, r, shell.Each(list))
}

// exportKeys sends the list of service keys. It has no secrets: they are not stored.
func (h *handlers) exportKeys(w http.ResponseWriter, r *http.Request) error {
	list, err := h.Staff.Keys(r.Context(), shell.Actor(r))
	if err != nil {
		return err
	}
	head := []string{"id", "name", "prefix", "scopes", "created_by", "created_at", "expires_at", "last_used_at", "revoked_at"}
	return shell.FileOf("keys", head, func(k staff.Key) []any {
		return []any{k.ID, k.Name, k.Prefix, joinScopes(k.Scopes), k.CreatedBy, k.CreatedAt, k.ExpiresAt, k.LastUsedAt, k.RevokedAt}
	}).Send(h.Shell, w, r, shell.Each(list))
}

func joinScopes(scopes []staff.Scope) string {
	words := make([]string, len(scopes))
	for i, s := range scopes {
		words[i] = string(s)
	}
	return strings.Join(words, ", ")
}
