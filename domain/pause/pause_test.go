package pause_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"dropbell/domain/pause"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		if !pause.For(t.Context(), time.Minute) || time.Since(begin) != time.Minute {
			t.Error("a pause does not last as long as it should")
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if pause.For(ctx, time.Minute) || time.Since(begin) != time.Minute+time.Second {
			t.Error("a pause goes on after its context ended")
		}
	})
}
