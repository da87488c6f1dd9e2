package coupons_test

import (
	"log/slog"
	"net/netip"
	"testing"
	"time"

	"dropbell/adapters/localstack"
	"dropbell/adapters/postgres"
	couponsdb "dropbell/adapters/postgres/coupons"
	"dropbell/adapters/postgres/pgtest"
	"dropbell/domain/pass"
	"dropbell/domain/review"
	"dropbell/domain/user"
)

// BenchmarkSigns measures what a claim waits for when its signs are noted, and how many signs a
// second are stored by one process.
func BenchmarkSigns(b *testing.B) {
	db, err := postgres.Open(b.Context(), localstack.Database(b), postgres.Options{AppName: "bench", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(db.Close)
	at := pgtest.Clock()
	taps := make([]review.Tap, 100_000)
	for i := range taps {
		by := user.ID(i + 1)
		taps[i] = review.Tap{TemplateID: 1, UserID: by, ClaimID: int64(i + 1), At: at, Pass: signKeys.Issue(pass.Pass{Way: pass.Puzzle, IssuedAt: at, ExpiresAt: at.Add(time.Hour)}, by, 1),
			Address: netip.AddrFrom4([4]byte{100, byte(i >> 16), byte(i >> 8), byte(i)}), Agent: "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X)"}
	}
	b.Run("note", func(b *testing.B) {
		signs := couponsdb.NewSigns(db, signKeys, couponsdb.SignsReport{})
		defer func() { signs.Close() }()
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			if i == len(taps) { // more would not find a place in the list, which costs less
				b.StopTimer()
				signs.Close()
				signs, i = couponsdb.NewSigns(db, signKeys, couponsdb.SignsReport{}), 0
				b.StartTimer()
			}
			signs.Note(taps[i])
			i++
		}
	})
	b.Run("store", func(b *testing.B) {
		for b.Loop() {
			b.StopTimer()
			if _, err := db.Pool.Exec(b.Context(), `truncate claim_signs`); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			signs := couponsdb.NewSigns(db, signKeys, couponsdb.SignsReport{})
			for _, t := range taps {
				signs.Note(t)
			}
			signs.Close()
		}
		b.ReportMetric(float64(len(taps)*b.N)/b.Elapsed().Seconds(), "signs/s")
	})
}
