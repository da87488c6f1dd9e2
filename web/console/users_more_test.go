package console

import (
	"testing"

	"dropbell/domain/staff"
)

// Whoever has no profile can have reserved all the same.
func TestNumberWithoutAProfileIsOffered(t *testing.T) {
	g := newRig(t)
	g.exec(`insert into users (id, name) values (1001, 'Ada Lovelace')`)
	b := g.as(staff.Viewer)
	b.get("/users?q=777777").is(200).has(`href="/users/777777"`, "There is no profile with the number 777777").hasNot("Nobody found")
	b.get("/users?q=1001").is(200).has("Ada Lovelace").hasNot("There is no profile")
	b.get("/users?q=nobody").is(200).has("Nobody found").hasNot("There is no profile")
}
