package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"dropbell/domain/delivery"
	"dropbell/domain/reminder"
	"dropbell/domain/staff"
	"dropbell/domain/user"
)

func TestBalance(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	b := g.as(staff.Viewer)
	b.get("/templates/1/balance").is(200).has("No slot has fired yet")
	for id := user.ID(1001); id <= 1005; id++ {
		g.book(d, id, delivery.App, 5)
	}
	s := g.fire(d, 1, takes)
	b.get("/templates/1/balance").is(200).has("Nobody is missing, nobody is counted twice", "5 reserved = 5 delivered + 0 skipped", fmt.Sprintf("/templates/1/slots/%d/receipt.csv", s.ID), "Counted from the rows at ").hasNot("E-mail 0")
	g.exec(`update slot_results set reserved = reserved + 2 where slot_id = $1 and channel = 0`, s.ID)
	b.get("/templates/1/balance").is(200).has("The sheet is off by 2", "2 people who were due at the firing are in no batch", "stored: 7").hasNot("Nobody is missing")
	g.exec(`update slot_results set reserved = reserved - 2, sent = sent - 1 where slot_id = $1 and channel = 0`, s.ID)
	b.get("/templates/1/balance").is(200).has("The sheet is off by 1", "Stored counters differ from the rows", "stored: 4")
	g.shop(11)
	g.as(staff.Viewer, 11).get("/templates/1/balance").is(http.StatusForbidden)
}

func TestReceipt(t *testing.T) {
	g := newRig(t)
	d := g.published(10, 2*time.Hour)
	other := g.published(11, 3*time.Hour)
	g.book(d, 1001, delivery.App, 5)
	g.book(d, 1002, delivery.App, 5)
	s := g.fire(d, 1, takes)
	path := func(template, slot int64) string {
		return fmt.Sprintf("/templates/%d/slots/%d/receipt.csv", template, slot)
	}
	a := g.as(staff.Viewer).get(path(d.ID, s.ID)).is(200).has("1001,app,sent", "1002,app,sent", "# template,1")
	if got := a.header.Get("Content-Disposition"); a.header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(got, `attachment; filename="receipt-1-5min-`) {
		t.Errorf("headers %v", a.header)
	}
	head, sum, _ := strings.Cut(a.body, "# sha256,")
	if want := sha256.Sum256([]byte(head)); strings.TrimSpace(sum) != hex.EncodeToString(want[:]) {
		t.Error("the receipt does not carry its checksum")
	}
	b := g.as(staff.Viewer)
	for _, p := range []string{path(other.ID, s.ID), path(d.ID, 999999), "/templates/1/slots/x/receipt.csv", path(99, s.ID)} {
		b.get(p).is(http.StatusNotFound)
	}
	foreign := g.as(staff.Viewer, 11)
	foreign.get(path(d.ID, s.ID)).is(http.StatusForbidden)
	foreign.get(path(other.ID, s.ID)).is(http.StatusForbidden) // the slot is not that template's
}

// torn is a store that breaks after so many bytes.
type torn struct {
	reminder.ReceiptStore
	after int
}

func (s torn) Receipt(_ context.Context, _ int64, w io.Writer) error {
	if s.after > 0 {
		if _, err := io.WriteString(w, strings.Repeat("x", s.after)); err != nil {
			return err
		}
	}
	return errors.New("the connection is gone")
}

// counting counts what is logged as an error.
type counting struct{ n atomic.Int32 }

func (c *counting) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "level=ERROR") {
		c.n.Add(1)
	}
	return len(p), nil
}

func TestABrokenReceiptIsNotTakenForAWholeOne(t *testing.T) {
	for _, after := range []int{0, 100, 1 << 20} {
		log := &counting{}
		g := newRig(t, func(d *Deps) {
			d.Drops.Receipts.Store = torn{d.Drops.Receipts.Store, after}
			d.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		d := g.published(10, 2*time.Hour)
		g.book(d, 1001, delivery.App, 5)
		s := g.fire(d, 1, takes)
		b := g.as(staff.Viewer)
		res, err := b.client.Get(fmt.Sprintf("%s/templates/1/slots/%d/receipt.csv", g.server.URL, s.ID))
		if err == nil {
			_, err = io.ReadAll(res.Body)
			res.Body.Close()
		}
		if after == 0 && (err != nil || res.StatusCode != 500) {
			t.Errorf("nothing was sent yet: %v", err)
		}
		if after > 0 && err == nil {
			t.Errorf("after %d bytes: the client does not notice", after)
		}
		if log.n.Load() == 0 { // the client may try again by itself
			t.Errorf("after %d bytes: nothing is logged", after)
		}
	}
}
