// Package commands holds the commands of an operator: migrations, audits, erasing a user, and
// passwords and second factors of staff who cannot sign in.
package commands

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"dropbell"
	"dropbell/adapters/config"
	"dropbell/adapters/postgres"
	"dropbell/app"
	"dropbell/migrations"
)

const usage = `worker fires reminders, delivers them and keeps house.

  worker                      run until SIGTERM
  worker migrate              bring the database up to date, say what is done, and exit;
                              safe while the previous version runs
  worker migrate contract     also take away what only the previous version needed, once
                              none of its programs runs any more
  worker audit TEMPLATE       recompute a template's balance sheet, stock and figures, and exit
  worker audit campaign ID    recompute a campaign's account, and exit
  worker audit notices [DAY]  recompute the notices before coupons expire of a day, such as
                              2027-01-31, or of yesterday, today and tomorrow, and exit
  worker doctor [-json] [-web N] [-worker N]
                              examine settings, clocks, fsync, versions, migrations, connections,
                              providers' rates and room on disk before an evening, say what to do,
                              and exit; N = how many processes there will be
  worker rush [-customers N] [-to URL] REHEARSAL
                              let N made-up customers come to the copy of a drop that a rehearsal made,
                              as on a real evening, and print how long they waited; with -to over HTTP,
                              with the dbk_test_ key in RUSH_KEY. Not within an hour before the opening
                              of a drop, nor above half of the measured capacity of this machine
  worker cell                 print which cell this database is: 0 unless it was numbered
  worker cell NUMBER [OLDER]  make an empty database the cell NUMBER, whose ids name it, so that
                              they differ from the ids of other installations; OLDER is
                              what worker cell prints for a cell 0 with ids older than cells
  worker cell remove NAME     take the last database of CELLS, whose shops have all moved away, out of
                              the installation
  worker move SHOP CELL       move a shop with all its drops to another cell of CELLS, and exit; a
                              move that died goes on where it was
  worker move SHOP            move it to the database MOVE_DATABASE_URL, of another installation
  worker move SHOP [CELL] undo
                              remove what an unfinished move has copied there
  worker erase USER           erase a person, as the console's button does, and exit
  worker user-data USER       print everything stored about a user as JSON, and exit
  worker reset-second-factors EMAIL
                              remove the second factors and recovery codes of a member of
                              staff who lost them all, end the member's sign-ins, and exit
  worker password-link EMAIL  print a link with which a member of staff sets a password, and
                              exit; it begins with PUBLIC_URL
  worker version              print the version
  worker help                 print this

migrate, cell, move, erase, user-data, reset-second-factors, password-link and rush need DATABASE_URL alone (behind a pooler: and
DATABASE_POOL_MODE, migrate, move and rush: and DATABASE_SESSION_URL; migrate, cell remove and move: and CELLS; move: and MOVE_DATABASE_URL); audit needs DATABASE_URL and, to read the
shards of the claim gate, REDIS_URL, which rush needs for a copy behind the gate (of notices: and RETENTION_DAYS). doctor reads every variable, as without a command.

Exit codes:
  0  as it should be: stopped by a signal; up to date; the audit found no difference
  1  failed; of audit: it FOUND A DIFFERENCE, and nothing else; of doctor: it found a fault
  2  the command or the environment is wrong; of audit: also that it could not look,
     because the database does not answer or there is no such template or campaign

`

// Do runs the command that args name; see worker --help. args has at least one element.
func Do(ctx context.Context, args []string, getenv func(string) string, out io.Writer) error {
	if slices.ContainsFunc(args, isHelp) {
		fmt.Fprint(out, usage)
		config.Help(out)
		return nil
	}
	switch args[0] {
	case "migrate":
		contract := len(args) == 2 && args[1] == "contract"
		if len(args) > 1 && !contract {
			return config.Mistake{Err: errors.New("worker migrate takes no argument but contract; see worker --help")}
		}
		return migrate(ctx, migrations.Released, contract, getenv, out)
	case "erase", "user-data":
		return person(ctx, args, getenv, out)
	case "doctor":
		return diagnose(ctx, args[1:], getenv, app.Clock, out)
	case "move":
		return moveShop(ctx, args[1:], getenv, out)
	case "cell":
		return numberCell(ctx, args[1:], getenv, out)
	case "audit":
		return audit(ctx, args[1:], getenv, out)
	case "rush":
		return rush(ctx, args[1:], getenv, out)
	case "version", "-version", "--version":
		fmt.Fprintln(out, dropbell.About("worker"))
		return nil
	case "reset-second-factors":
		return resetSecondFactors(ctx, args[1:], getenv, out)
	case "password-link":
		return printPasswordLink(ctx, args[1:], getenv, out)
	}
	return config.Mistake{Err: fmt.Errorf("unknown command %q; see worker --help", args[0])}
}

func isHelp(arg string) bool { return slices.Contains([]string{"help", "-h", "-help", "--help"}, arg) }

// migrate applies the migrations and prints what it does.
func migrate(ctx context.Context, steps migrations.Steps, contract bool, getenv func(string) string, out io.Writer) error {
	cfg, err := config.LoadOnly(getenv, append(databaseVariables(), "DATABASE_SESSION_URL", "CELLS")...)
	if err != nil {
		return config.Mistake{Err: err}
	}
	url, err := sessionURL(ctx, cfg)
	if err != nil {
		return config.Mistake{Err: err}
	}
	err = migrateOne(ctx, steps, contract, url, out)
	for n := 1; n < len(cfg.Cells); n++ {
		fmt.Fprintf(out, "cell %s:\n", cfg.Cells[n].Name)
		if failed := migrateOne(ctx, steps, contract, cfg.Cells[n].URL, out); failed != nil {
			err = errors.Join(err, fmt.Errorf("cell %s: %w", cfg.Cells[n].Name, failed))
		}
	}
	return err
}

// migrateOne applies the migrations to one database.
func migrateOne(ctx context.Context, steps migrations.Steps, contract bool, url string, out io.Writer) error {
	tell := func(line string) { fmt.Fprintln(out, line) }
	applied, err := steps.UpTelling(ctx, url, contract, tell)
	if err != nil {
		return fmt.Errorf("migrating failed, with %d migrations applied by this run: %w", applied, err)
	}
	version, err := steps.Version(ctx, url)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s; the database is at migration %d\n", appliedWords(applied), version)
	newest, err := steps.Newest()
	if err == nil && version < newest {
		fmt.Fprintf(out, "up to migration %d there is something to take away that only the previous version needs: "+
			"once none of its programs runs any more, run worker migrate contract\n", newest)
	}
	return err
}

// sessionURL returns a database URL with sessions of its own (no transaction pooler). Migrations
// need them: a session's lock keeps two processes from applying the same step.
func sessionURL(ctx context.Context, cfg config.Config) (string, error) {
	const remedy = "migrations need sessions of their own: set DATABASE_SESSION_URL to the server itself, or to a pool in session mode"
	url, name := cfg.DatabaseURL, "DATABASE_URL"
	if cfg.SessionURL != "" {
		url, name = cfg.SessionURL, "DATABASE_SESSION_URL"
	} else if cfg.TransactionPool() {
		return "", errors.New("DATABASE_SESSION_URL is missing: " + remedy)
	}
	kept, err := postgres.HasSessions(ctx, url)
	if err == nil && !kept {
		err = fmt.Errorf("%s leads to a connection pooler in transaction mode, and %s", name, remedy)
	}
	return url, err
}

func appliedWords(n int) string {
	switch n {
	case 0:
		return "nothing to do"
	case 1:
		return "1 migration applied"
	}
	return fmt.Sprintf("%d migrations applied", n)
}
