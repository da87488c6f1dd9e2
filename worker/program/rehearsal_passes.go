package program

import (
	"context"
	"crypto/rand"
	"sync/atomic"
	"time"

	"dropbell/app"
	"dropbell/domain/pass"
	"dropbell/domain/rehearsal"
	"dropbell/domain/template"
	"dropbell/domain/user"
)

const (
	// puzzles is how many made-up customers earn their pass by a puzzle, if the drop accepts puzzles. The others have an attestation of the shop.
	puzzles = 10
	// forgetful is of how many customers one comes without a pass.
	forgetful = 20
)

// guard is the protection of a drop in its rehearsal: customers earn passes and show them by the code of real drops, with keys of the rehearsal.
// The copy itself has no protection, so that a shop can try its checkout on it without passes.
type guard struct {
	drop   template.Template // the copy with the protection of the drop
	passes *pass.Passes
	solved map[user.ID]string // passes that were earned by puzzles
	took   time.Duration      // of one puzzle
	// came customers came without a pass, of whom refused were refused.
	came, refused atomic.Int64
}

func newGuard(copied template.Template, p template.Protection) *guard {
	g := &guard{drop: copied, solved: map[user.ID]string{}}
	g.drop.Protection = p
	g.passes = &pass.Passes{Keys: pass.NewKeys(rand.Text()), Templates: g, Texts: func() bool { return false }, Now: app.Clock}
	return g
}

// Template implements [pass.Templates].
func (g *guard) Template(context.Context, int64) (template.Template, error) { return g.drop, nil }

// solve lets the first customers solve puzzles, before the rush, if the drop accepts puzzles.
func (g *guard) solve(ctx context.Context) error {
	begin := time.Now()
	for by := rehearsal.FirstUser + 1; by <= rehearsal.FirstUser+puzzles; by++ {
		a, err := g.passes.Get(ctx, by, g.drop.ID, pass.Evidence{})
		if err != nil || a.Challenge == nil {
			return err
		}
		if a, err = g.passes.Get(ctx, by, g.drop.ID, pass.Evidence{Puzzle: a.Challenge.Solve()}); err != nil {
			return err
		}
		g.solved[by] = a.Text
	}
	g.took = time.Since(begin) / puzzles
	return nil
}

// admit lets a customer show a pass, or come without one, as a claim or an entry does.
func (g *guard) admit(ctx context.Context, by user.ID, tap int) error {
	text, without := g.solved[by], by%forgetful == 0
	if text == "" && !without {
		a, err := g.passes.Get(ctx, by, g.drop.ID, pass.Evidence{Attested: true})
		if err != nil {
			return err
		}
		text = a.Text
	}
	err := g.passes.Keys.Admit(&g.drop, by, text, app.Clock())
	if without && tap == 1 {
		g.came.Add(1)
		if err != nil {
			g.refused.Add(1)
		}
	}
	return err
}
