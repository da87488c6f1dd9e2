package console

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func TestExplain(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	g.exec(`insert into users (id, name, opt_outs) values (1001, 'Grace Hopper', 0), (1002, 'Alan', 1)`)
	g.book(d, 1001, delivery.App, 5, 60)
	g.book(d, 1002, delivery.App, 60)
	g.book(d, 1003, delivery.App, 60)
	g.fire(d, 12, fails(map[user.ID]delivery.Result{1003: {Detail: "HTTP 503 somewhere"}}))
	b := g.as(staff.Viewer)
	b.get("/templates/1/users/1001").is(200).has("What happened to Grace Hopper", "Moon cake night", "Reserved", "60-minute reminder by App fired", "60-minute reminder by App delivered",
		"planned ", "happened ", "ms late", "Batch ", "1 delivered, 1 still ahead", "Will be reminded at "+d.OpensAt.Add(-5 * time.Minute).In(berlin(t)).Format("15:04:05")[:5], "stored as 2049")
	b.get("/templates/1/users/1002").is(200).has("was skipped", "The user has opted out of this channel.", "1 skipped").hasNot("Will be reminded")
	b.get("/templates/1/users/1003").is(200).has("failed for good", "All attempts failed.", "HTTP 503 somewhere", "1 failed")
	b.get("/users/1001").is(200).has(`href="/templates/1/users/1001"`)
	g.reopen(d.ID, 3*time.Hour)
	b.get("/templates/1/users/1001").is(200).has("The opening was moved", "by Ada Okafor", "2 still ahead")
}

func TestExplainNothing(t *testing.T) {
	g := newRig(t)
	g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.get("/templates/1/users/42").is(http.StatusNotFound).has("Nothing to explain", "User 42 holds no reservation for “Moon cake night”")
	for _, path := range []string{"/templates/1/users/0", "/templates/1/users/ada", "/templates/1/users/042", "/templates/9/users/42"} {
		b.get(path).is(http.StatusNotFound).hasNot("Nothing to explain")
	}
	g.shop(11)
	g.as(staff.Viewer, 11).get("/templates/1/users/42").is(http.StatusForbidden)
}
