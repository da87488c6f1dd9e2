package console

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"dropbell/domain/reminder"
	"dropbell/views/pages"
)

func (c *Console) balance(w http.ResponseWriter, r *http.Request) error {
	t, err := c.loadTemplate(r)
	if err != nil {
		return err
	}
	lines, err := c.Board.Balance(r.Context(), t.ID)
	if err != nil {
		return err
	}
	p := pages.Balance{Template: t, At: c.Now(), Lines: make([]pages.BalanceLine, len(lines))}
	for i, l := range lines {
		p.Lines[i] = pages.BalanceLine{BalanceLine: l}
	}
	return c.show(w, r, http.StatusOK, p.Page())
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
