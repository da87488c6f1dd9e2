package audience_test

import (
	"testing"

	"dropbell/adapters/postgres/pgtest"
)

// fixture is pgtest.Fixture with the methods that the tests of this package add.
type fixture struct{ *pgtest.Fixture }

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return &fixture{pgtest.New(t)}
}
