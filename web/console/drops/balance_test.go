package drops_test

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
	"dropbell/web/console"
	"dropbell/web/console/consoletest"
)

func TestBalance(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	b := g.As(staff.Viewer)
	b.Get("/templates/1/balance").Is(200).Has("No reminders were due yet")
	for id := user.ID(1001); id <= 1005; id++ {
		g.Book(d, id, delivery.App, 5)
	}
	s := g.Fire(d, 1, consoletest.Takes)
	b.Get("/templates/1/balance").Is(200).Has("No recipient is missing, and none is counted twice", "5 reserved = 5 sent + 0 skipped", fmt.Sprintf("/templates/1/slots/%d/receipt.csv", s.ID), "Counted from the rows at ").HasNot("E-mail 0")
	g.Exec(`update slot_results set reserved = reserved + 2 where slot_id = $1 and channel = 0`, s.ID)
	b.Get("/templates/1/balance").Is(200).Has("The sheet is off by 2", "2 people who were due at the start are in no batch", "stored: 7").HasNot("No recipient is missing")
	g.Exec(`update slot_results set reserved = reserved - 2, sent = sent - 1 where slot_id = $1 and channel = 0`, s.ID)
	b.Get("/templates/1/balance").Is(200).Has("The sheet is off by 1", "Stored counters differ from the rows", "stored: 4")
	g.Shop(11)
	g.As(staff.Viewer, 11).Get("/templates/1/balance").Is(http.StatusForbidden)
}

func TestReceipt(t *testing.T) {
	g := consoletest.New(t)
	d := g.Published(10, 2*time.Hour)
	other := g.Published(11, 3*time.Hour)
	g.Book(d, 1001, delivery.App, 5)
	g.Book(d, 1002, delivery.App, 5)
	s := g.Fire(d, 1, consoletest.Takes)
	path := func(template, slot int64) string {
		return fmt.Sprintf("/templates/%d/slots/%d/receipt.csv", template, slot)
	}
	a := g.As(staff.Viewer).Get(path(d.ID, s.ID)).Is(200).Has("1001,app,sent", "1002,app,sent", "# template,1")
	if got := a.Header.Get("Content-Disposition"); a.Header.Get("Content-Type") != "text/csv; charset=utf-8" || !strings.HasPrefix(got, `attachment; filename="receipt-1-5min-`) {
		t.Errorf("headers %v", a.Header)
	}
	head, sum, _ := strings.Cut(a.Body, "# sha256,")
	if want := sha256.Sum256([]byte(head)); strings.TrimSpace(sum) != hex.EncodeToString(want[:]) {
		t.Error("the receipt does not carry its checksum")
	}
	b := g.As(staff.Viewer)
	for _, p := range []string{path(other.ID, s.ID), path(d.ID, 999999), "/templates/1/slots/x/receipt.csv", path(99, s.ID)} {
		b.Get(p).Is(http.StatusNotFound)
	}
	foreign := g.As(staff.Viewer, 11)
	foreign.Get(path(d.ID, s.ID)).Is(http.StatusForbidden)
	foreign.Get(path(other.ID, s.ID)).Is(http.StatusForbidden) // the slot is not that template's
}

// brokenStore is a store that breaks after so many bytes.
type brokenStore struct {
	reminder.ReceiptStore
	after int
}

func (s brokenStore) Receipt(_ context.Context, _ int64, w io.Writer) error {
	if s.after > 0 {
		if _, err := io.WriteString(w, strings.Repeat("x", s.after)); err != nil {
			return err
		}
	}
	return errors.New("the connection is gone")
}

// errorCounter counts log records at level error.
type errorCounter struct{ n atomic.Int32 }

func (c *errorCounter) Write(p []byte) (int, error) {
	if strings.Contains(string(p), "level=ERROR") {
		c.n.Add(1)
	}
	return len(p), nil
}

func TestABrokenReceiptIsNotTakenForAWholeOne(t *testing.T) {
	for _, after := range []int{0, 100, 1 << 20} {
		log := &errorCounter{}
		g := consoletest.New(t, func(d *console.Deps) {
			d.Drops.Receipts.Store = brokenStore{d.Drops.Receipts.Store, after}
			d.Log = slog.New(slog.NewTextHandler(log, nil))
		})
		d := g.Published(10, 2*time.Hour)
		g.Book(d, 1001, delivery.App, 5)
		s := g.Fire(d, 1, consoletest.Takes)
		b := g.As(staff.Viewer)
		res, err := b.Client.Get(fmt.Sprintf("%s/templates/1/slots/%d/receipt.csv", g.Server.URL, s.ID))
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
