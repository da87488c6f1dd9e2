package audience

import (
	"context"
	"encoding/json"
	"net/http"

	"dropbell/domain/user"
	"dropbell/web/api/pipeline"
	"dropbell/web/cells"
)

func (h *handlers) eraseRoutes() {
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, "/admin/users/{id}", "erase-user", "Erase a user",
		pipeline.Route{Description: "Removes name, contacts, preferences, attributes, reservations, memberships in lists, uploaded files, and every text that contains one of them. " +
			"The bare id stays in coupons and deliveries, so that sums still add up. From then on nothing is stored about the id: lines of an import and of a list are refused, " +
			"and PUT /preferences is 409 `user_erased`, until DELETE …/erasure. 404 if the user was erased before and nothing was left.",
			Status: http.StatusNoContent, Codes: []string{"user_not_found"}}),
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{}, error) {
			return &struct{}{}, h.Users.Erase(ctx, pipeline.ActorOf(ctx), user.ID(id))
		}))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodDelete, "/admin/users/{id}/erasure", "lift-erasure", "Lift an erasure",
		pipeline.Route{Status: http.StatusNoContent, Codes: []string{"erasure_not_found"}}),
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{}, error) {
			return &struct{}{}, h.Users.LiftErasure(ctx, pipeline.ActorOf(ctx), user.ID(id))
		}))
	pipeline.Register(h.Pipeline, pipeline.Staff(http.MethodGet, "/admin/users/{id}/data", "user-data", "Everything stored about a user",
		pipeline.Route{Cells: &cells.List{}, Description: "To answer a user's request for their data: the rows of every table that contains the user's id, by table. The export is recorded in the audit log."}),
		pipeline.ByID(func(ctx context.Context, id int64) (*struct{ Body map[string]any }, error) {
			raw, err := h.Users.Everything(ctx, pipeline.ActorOf(ctx), user.ID(id))
			if err != nil {
				return nil, err
			}
			out := map[string]any{}
			return &struct{ Body map[string]any }{out}, json.Unmarshal(raw, &out)
		}))
}
