package audience_test

import (
	"testing"

	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// A user without a profile can have reserved all the same.
func TestNumberWithoutAProfileIsOffered(t *testing.T) {
	g := consoletest.New(t)
	g.Exec(`insert into users (id, name) values (1001, 'Ada Lovelace')`)
	b := g.As(staff.Viewer)
	b.Get("/users?q=777777").Is(200).Has(`href="/users/777777"`, "No profile has the number 777777").HasNot("No customer found")
	b.Get("/users?q=1001").Is(200).Has("Ada Lovelace").HasNot("No profile has the number")
	b.Get("/users?q=nobody").Is(200).Has("No customer found").HasNot("No profile has the number")
}
