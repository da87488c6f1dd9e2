package drops_test

import (
	"net/http"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	"dropbell/web/console/consoletest"
)

func TestExplain(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	g.Exec(`insert into users (id, name, opt_outs) values (1001, 'Grace Hopper', 0), (1002, 'Alan', 1)`)
	g.Book(d, 1001, delivery.App, 5, 60)
	g.Book(d, 1002, delivery.App, 60)
	g.Book(d, 1003, delivery.App, 60)
	g.Fire(d, 12, consoletest.Fails(map[user.ID]delivery.Result{1003: {Detail: "HTTP 503 somewhere"}}))
	b := g.As(staff.Viewer)
	b.Get("/templates/1/users/1001").Is(200).Has("Delivery history of Grace Hopper", "Moon cake night", "Reserved", "60-minute reminder by App started", "60-minute reminder by App sent",
		"planned ", "happened ", "ms late", "Batch ", "1 sent, 1 still ahead", "Will be reminded at "+d.OpensAt.Add(-5 * time.Minute).In(consoletest.Berlin(t)).Format("15:04:05")[:5], "stored as 2049")
	b.Get("/templates/1/users/1002").Is(200).Has("was skipped", "The customer has opted out of this channel.", "1 skipped").HasNot("Will be reminded")
	b.Get("/templates/1/users/1003").Is(200).Has("failed permanently", "All attempts failed.", "HTTP 503 somewhere", "1 failed")
	b.Get("/users/1001").Is(200).Has(`href="/templates/1/users/1001"`)
	g.Reopen(d.ID, 3*time.Hour)
	b.Get("/templates/1/users/1001").Is(200).Has("The opening was moved", "by Ada Okafor", "2 still ahead")
}

func TestExplainNothing(t *testing.T) {
	g := consoletest.New(t)
	g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	b.Get("/templates/1/users/42").Is(http.StatusNotFound).Has("Nothing to explain", "Customer 42 holds no reservation for “Moon cake night”")
	for _, path := range []string{"/templates/1/users/0", "/templates/1/users/ada", "/templates/1/users/042", "/templates/9/users/42"} {
		b.Get(path).Is(http.StatusNotFound).HasNot("Nothing to explain")
	}
	g.Shop(11)
	g.As(staff.Viewer, 11).Get("/templates/1/users/42").Is(http.StatusForbidden)
}
