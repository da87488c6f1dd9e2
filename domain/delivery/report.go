package delivery

import (
	"context"
	"slices"
)

// report reports the result of a call to the channel's admission, unless the call timed out.
// Answers with [Result.Judged] or [Result.Held] say nothing about the provider of the channel;
// only their [Result.Beside], if set, does. If no answer is about the provider of the channel, no
// call of that provider is reported.
func (p *clearance) report(ctx context.Context, results []Result) {
	ctx = context.WithoutCancel(ctx)
	given, held := Handed(results)
	own := given
	if slices.ContainsFunc(given, isJudged) {
		own = slices.DeleteFunc(slices.Clone(given), isJudged)
	}
	beside, kept := besideOf(results)
	own, held = slices.Concat(own, beside), held-kept
	switch {
	case held > 0: // they used neither rate nor circuit
		defer p.admission.Unused(ctx, p.load(held))
	case len(given) > 0 && len(own) == 0: // they used the rate
		p.admission.Unused(ctx, p.load(0))
	}
	if len(own) > 0 && p.clock().Before(p.batch.WorthlessAfter.Add(-hangUp)) {
		call := CallOf(own)
		// A pause that outlasts the messages that wait for it is of no use.
		call.After = min(call.After, p.batch.WorthlessAfter.Sub(p.clock())/2)
		p.admission.Report(ctx, p.batch.Channel, call)
	}
}

func isJudged(res Result) bool { return res.Judged }

// besideOf returns the answers in [Result.Beside], which are from the provider of the channel.
// held is the number of results with such an answer that are [Result.Held].
func besideOf(results []Result) (own []Result, held int) {
	for _, res := range results {
		if res.Beside == nil || res.Beside.Held {
			continue
		}
		own = append(own, *res.Beside)
		if res.Held {
			held++
		}
	}
	return own, held
}

// CallOf summarizes a call. The call failed if it reached no recipient and at least one failure
// was the provider's own. It was throttled if the provider named a pause, or if it reached no
// recipient and the provider asked to wait.
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
