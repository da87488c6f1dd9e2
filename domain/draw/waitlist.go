package draw

import "context"

// waitChunk is how many entries join the waitlist in one transaction. Users who join it wait for the transaction.
const waitChunk = 5000

// wait puts the entries that did not win on the waitlist of the drop: their ranks are their places in the order of
// the draw, which is computed again from the sealed list. It may stop and begin anew at any point.
func (o *Operator) wait(ctx context.Context, templateID int64) error {
	w, waits, err := o.Store.WaitsFor(ctx, templateID)
	if err != nil || !waits {
		return err
	}
	card, err := w.Draw.Card()
	if err != nil {
		return err
	}
	seal, err := w.Draw.Sealing()
	if err != nil {
		return err
	}
	_, order, _, err := NewResult(card, seal, w.Rows, w.Draw.Evidence, w.Struck, o.Judge)
	if err != nil {
		return err
	}
	ranks := make([]int32, len(w.Rows))
	for rank, i := range order {
		ranks[i] = int32(rank + 1)
	}
	for ctx.Err() == nil {
		more, err := o.Store.EnterWaiting(ctx, templateID, waitChunk, func(t Ticket) (int64, bool) {
			i, found := Find(w.Rows, t)
			if !found {
				return 0, false
			}
			return int64(ranks[i]), true
		})
		if err != nil || !more {
			return err
		}
	}
	return ctx.Err()
}
