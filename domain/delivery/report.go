package delivery

import "context"

// report reports the result of a call to the channel's admission, unless the
// call timed out.
func (r *run) report(ctx context.Context, results []Result) {
	results, held := Handed(results)
	if held > 0 { // they used neither rate nor circuit
		defer r.Admission.Unused(context.WithoutCancel(ctx), r.load(held))
	}
	if len(results) > 0 && r.clock().Before(r.batch.WorthlessAfter.Add(-hangUp)) {
		call := CallOf(results)
		// A pause that outlasts the messages that wait for it is of no use.
		call.After = min(call.After, r.batch.WorthlessAfter.Sub(r.clock())/2)
		r.Admission.Report(context.WithoutCancel(ctx), r.batch.Channel, call)
	}
}

// CallOf sums up a call: it failed when it reached no recipient and at least one
// failure was the provider's own. It was throttled when the provider named a
// time, or reached no recipient and asked to wait.
func CallOf(results []Result) (c Call) {
	through := false
	c.Judged = len(results) > 0
	for _, res := range results {
		c.Judged = c.Judged && res.Judged
		c.Via = res.Via
		switch {
		case res.Status == Throttled && !res.Apart:
			c.OK, c.Throttled, c.After = true, true, max(c.After, res.After)
		case res.Status == Permanent && res.Provider:
			c.Detail = res.Detail
		case res.Status != Transient || res.Apart:
			c.OK, through = true, through || res.Status == Delivered
		default:
			c.Detail = res.Detail
		}
	}
	c.Throttled = c.Throttled && (c.After > 0 || !through)
	return c
}
