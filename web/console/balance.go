package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	"dropbell/views/pages"
)

func (c *Console) balance(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	p := pages.Balance{Template: t}
	if p.Lines, err = c.balanceLines(r, t); err != nil {
		return err
	}
	p.At = c.Now()
	return c.show(w, r, http.StatusOK, p.Page())
}

// balanceLines counts the sheet. A line takes several statements, between
// which a batch of a slot that is going out may end: a difference there is
// believed only if a second look finds the same.
func (c *Console) balanceLines(r *http.Request, t template.Template) ([]pages.BalanceLine, error) {
	first, err := c.Board.Balance(r.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	lines, again := make([]pages.BalanceLine, len(first)), false
	for i, l := range first {
		lines[i] = pages.BalanceLine{BalanceLine: l}
		again = again || l.Difference() != 0
	}
	if !again {
		return lines, nil
	}
	second, err := c.Board.Balance(r.Context(), t.ID)
	if err != nil {
		return nil, err
	}
	return settled(first, second), nil
}

// settled returns the second look, in which a line whose difference is not
// the one of the first look is moving.
func settled(first, second []reminder.BalanceLine) []pages.BalanceLine {
	type key struct {
		slot    int64
		channel int
	}
	before := map[key]int64{}
	for _, l := range first {
		before[key{l.Slot.ID, int(l.Channel)}] = l.Difference()
	}
	lines := make([]pages.BalanceLine, len(second))
	for i, l := range second {
		was, known := before[key{l.Slot.ID, int(l.Channel)}]
		lines[i] = pages.BalanceLine{BalanceLine: l, Moving: l.Difference() != 0 && (!known || was != l.Difference())}
	}
	return lines
}

// receipt sends the list of everybody who was due in a slot.
func (c *Console) receipt(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	slotID, err := strconv.ParseInt(r.PathValue("slot"), 10, 64)
	if err != nil || slotID <= 0 {
		return errNoPage
	}
	head, err := c.Receipts.Head(r.Context(), actor(r), slotID)
	if err != nil {
		return err
	}
	if head.TemplateID != t.ID {
		return reminder.ErrNoSlot
	}
	out := &download{w: w, name: receiptName(head)}
	if err := c.Receipts.Write(r.Context(), actor(r), slotID, out); err != nil {
		return out.broken(c, r, err)
	}
	return nil
}

func receiptName(h reminder.ReceiptHead) string {
	return fmt.Sprintf("receipt-%d-%dmin-%s.csv", h.TemplateID, h.Slot.Slot.Minutes(), h.DueAt.UTC().Format("20060102T150405Z"))
}

// A download is a file on its way. As long as nothing was written, an error
// can still be answered with a page.
type download struct {
	w     http.ResponseWriter
	name  string
	begun bool
}

func (d *download) Write(p []byte) (int, error) {
	if !d.begun {
		h := d.w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8")
		h.Set("Content-Disposition", `attachment; filename="`+d.name+`"`)
		d.begun = true
	}
	// Whoever takes the file slowly may, but nobody holds it for ever.
	_ = http.NewResponseController(d.w).SetWriteDeadline(time.Now().Add(3 * writeTimeout)) // not every writer has one
	return d.w.Write(p)
}

// broken returns err if it can be answered. Else it cuts the connection, so
// that nobody takes what came for the whole file.
func (d *download) broken(c *Console, r *http.Request, err error) error {
	if !d.begun {
		return err
	}
	if r.Context().Err() == nil {
		c.Log.ErrorContext(r.Context(), "download broke off", "error", err, "request", requestID(r))
	}
	panic(http.ErrAbortHandler)
}
