package campaigns_test

import (
	"testing"

	"dropbell/adapters/postgres/pgtest"
)

// world is the fixture with what the tests here add to it.
type world struct{ *pgtest.World }

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{pgtest.New(t)}
}
