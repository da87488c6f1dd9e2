package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"dropbell/adapters/redis"
	"dropbell/migrations"
)

// readyWithin bounds an answer of /readyz.
const readyWithin = 2 * time.Second

// SchemaReady returns an error while the database lacks migrations that this program needs, or has
// cells that the configuration does not name.
func (a *App) SchemaReady(ctx context.Context) error {
	latest, err := migrations.Released.Latest()
	if err != nil {
		return err
	}
	if err := a.DB.Ready(ctx, latest); err != nil || a.Config.Cell > 0 {
		return err
	}
	return a.Stores.Cells.Named(ctx, max(1, len(a.Config.Cells)))
}

// Ready answers /readyz: 200, or 503 with a line for each dependency that fails. own returns the
// program's further reasons to wait, one reason per line; databaseReady says whether the
// database answers and has its migrations. bus returns the error of the event bus.
func (a *App) Ready(bus func() error, own func(databaseReady bool) []string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyWithin)
		defer cancel()
		var failed []string
		if a.DB.Ping(ctx) != nil {
			failed = append(failed, "postgresql does not answer")
		} else if err := a.SchemaReady(ctx); err != nil {
			failed = append(failed, err.Error())
		}
		failed = append(failed, own(len(failed) == 0)...)
		if err := a.Redis.Ping(ctx).Err(); err != nil {
			failed = append(failed, redis.Trouble(err))
		} else if err := bus(); err != nil {
			failed = append(failed, "event bus: "+err.Error())
		}
		if len(failed) > 0 {
			http.Error(w, strings.Join(failed, "\n")+"\n", http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	}
}
