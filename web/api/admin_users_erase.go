package api

import (
	"context"
	"net/http"

	"dropbell/domain/user"
)

func (a *API) eraseRoute() {
	register(a, a.operation(route{traits: traits{access: forStaff}, Method: http.MethodDelete, Path: "/admin/users/{id}", ID: "erase-user", Tag: tagStaff,
		Summary: "Forget a user",
		Description: "Removes name, contacts, preferences and attributes. The bare id stays in reservations, coupons, deliveries and lists, " +
			"so that sums still add up; messages to it find no contact.",
		Status: http.StatusNoContent, Codes: []string{"user_not_found"}}),
		func(ctx context.Context, in *struct {
			ID string `path:"id" pattern:"^[1-9][0-9]{0,18}$"`
		}) (*struct{}, error) {
			id, err := parseID("path.id", in.ID)
			if err != nil {
				return nil, err
			}
			return &struct{}{}, a.Users.Erase(ctx, actorOf(ctx), user.ID(id))
		})
}
