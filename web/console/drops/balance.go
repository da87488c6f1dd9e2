package drops

import (
	"fmt"
	"net/http"
	"strconv"

	"dropbell/domain/reminder"
	"dropbell/domain/template"
	droppages "dropbell/views/pages/drops"
	"dropbell/web/console/shell"
)

func (h *handlers) balance(w http.ResponseWriter, r *http.Request, t template.Template) error {
	lines, err := h.Board.Balance(r.Context(), t.ID)
	if err != nil {
		return err
	}
	kept, err := h.Board.KeptBalance(r.Context(), t.ID)
	if err != nil {
		return err
	}
	lines = append(kept, lines...)
	off, err := h.Figures.Off(r.Context(), t.ID)
	if err != nil {
		return err
	}
	p := droppages.Balance{Template: t, FiguresOff: off, At: h.Now(), Lines: make([]droppages.BalanceLine, len(lines))}
	for i, l := range lines {
		p.Lines[i] = droppages.BalanceLine{BalanceLine: l}
	}
	return h.Show(w, r, http.StatusOK, p.Page())
}

// receipt sends the list of all recipients of a slot.
func (h *handlers) receipt(w http.ResponseWriter, r *http.Request, t template.Template) error {
	slotID, err := strconv.ParseInt(r.PathValue("slot"), 10, 64)
	if err != nil || slotID <= 0 {
		return shell.ErrNoPage
	}
	head, err := h.Receipts.Head(r.Context(), shell.Actor(r), slotID)
	if err != nil {
		return err
	}
	if head.TemplateID != t.ID {
		return reminder.ErrNoSlot
	}
	out := shell.NewDownload(w, receiptName(head))
	if err := h.Receipts.Write(r.Context(), shell.Actor(r), slotID, out); err != nil {
		return out.Broken(h.Shell, r, err)
	}
	return nil
}

func receiptName(h reminder.ReceiptHead) string {
	return fmt.Sprintf("receipt-%d-%dmin-%s.csv", h.TemplateID, h.Slot.Slot.Minutes(), h.DueAt.UTC().Format("20060102T150405Z"))
}
