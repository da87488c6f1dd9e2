package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"dropbell/adapters/config"
	"dropbell/app"
	"dropbell/domain/staff"
)

// resetSecondFactors removes the second factors of the member of staff with the e-mail address,
// for a member that has lost all of them. An admin does the same in the console.
func resetSecondFactors(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if len(args) != 1 {
		return config.Mistake{Err: errors.New("worker reset-second-factors takes one e-mail address; see worker --help")}
	}
	cfg, err := config.LoadOnly(getenv, databaseVariables()...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	return withDatabase(ctx, cfg, func(stores app.Stores) error {
		service := &staff.Service{Store: stores.Staff, Now: func() time.Time { return time.Now().UTC() }}
		n, err := service.ResetFactorsOf(ctx, args[0])
		if errors.Is(err, staff.ErrNotFound) {
			return config.Mistake{Err: errors.New("no member of staff has this e-mail address")}
		}
		if err != nil {
			return fmt.Errorf("resetting failed: %w", err)
		}
		fmt.Fprintf(out, "second factors removed: %d; the recovery codes are removed as well, and every sign-in of the member has ended\n", n)
		return nil
	})
}
