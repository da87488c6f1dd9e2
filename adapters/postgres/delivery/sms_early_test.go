package delivery_test

import (
	"context"
	"errors"
	"testing"
	"time"

	deliverydb "dropbell/adapters/postgres/delivery"
	"dropbell/domain/delivery/feedback"
)

// taker stores reports in memory, or fails.
type taker struct {
	reports []feedback.Report
	err     error
}

func (k *taker) Take(_ context.Context, list []feedback.Report) error {
	if k.err == nil {
		k.reports = append(k.reports, list...)
	}
	return k.err
}

// TestReceiptsBeforeTheirSerials: a receipt that arrives before its message's
// serial is stored once the serial is known. Receipt and serial may be stored in
// any order, and the process may die in between any number of times.
func TestReceiptsBeforeTheirSerials(t *testing.T) {
	w := newFixture(t)
	s, refs, reports := deliverydb.NewSerials(w.DB), feedback.NewRefs("a secret"), &taker{}
	m := &feedback.Matcher{Store: s, Refs: refs, Reports: reports}
	at := time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC)
	early := []feedback.Early{{Serial: "1", Report: feedback.Report{Status: feedback.SoftBounced, Cause: "MK:0001"}},
		{Serial: "1", Report: feedback.Report{Status: feedback.Delivered, At: at}}, {Serial: "2", Report: feedback.Report{Status: feedback.Delivered}},
		{Serial: "of another program", Report: feedback.Report{Status: feedback.Delivered}}}
	for range 2 { // providers repeat their calls
		w.Must(s.Early(t.Context(), "tencent", early))
	}
	w.Must(m.Run(t.Context()))
	if len(reports.reports) != 0 {
		t.Fatalf("nothing was sent: %+v", reports.reports)
	}
	message := feedback.Ref{Batch: 7, User: 9}
	w.Must(s.Keep(t.Context(), "tencent", []feedback.Serial{{ID: "1", Reference: refs.Text(message)}, {ID: "2", Reference: "forged"}}))
	w.Must(s.Keep(t.Context(), "another", []feedback.Serial{{ID: "of another program", Reference: refs.Text(message)}}))
	reports.err = errors.New("the process dies")
	if err := m.Run(t.Context()); err == nil {
		t.Error("a report that could not be stored is forgotten")
	}
	reports.err = nil
	w.Must(m.Run(t.Context()))
	w.Must(m.Run(t.Context()))
	if len(reports.reports) != 2 {
		t.Fatalf("stored %+v", reports.reports)
	}
	for _, r := range reports.reports {
		if r.Ref != message || r.Provider != "tencent" || r.Status == feedback.Delivered && !r.At.Equal(at) || r.Status == feedback.SoftBounced && r.Cause != "MK:0001" {
			t.Errorf("stored %+v", r)
		}
	}
	if n := w.Number(`select count(*) from sms_early`); n != 1 {
		t.Errorf("%d are left, want the one of another program", n)
	}
	// Reports that have waited in vain for a while are no longer tried, except by
	// a worker that was away.
	old := []feedback.Early{{Serial: "1", Report: feedback.Report{Status: feedback.Complained}}}
	w.Must(s.Early(t.Context(), "tencent", old))
	w.Exec(`update sms_early set kept_at = kept_at - interval '11 minutes'`)
	if w.Must(m.Run(t.Context())); len(reports.reports) != 2 {
		t.Errorf("an old one is looked at again: %+v", reports.reports)
	}
	again := &feedback.Matcher{Store: s, Refs: refs, Reports: reports}
	if w.Must(again.Run(t.Context())); len(reports.reports) != 3 {
		t.Errorf("after a start: %+v", reports.reports)
	}
	reports.reports = reports.reports[:2]
	w.Must(s.Early(t.Context(), "tencent", []feedback.Early{{Serial: "1", Report: feedback.Report{Status: feedback.Bounced}}})) // its callback had looked before
	w.Must(m.Run(t.Context()))
	if len(reports.reports) != 3 {
		t.Errorf("stored %+v", reports.reports)
	}
}
