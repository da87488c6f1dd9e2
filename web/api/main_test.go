package api_test

import (
	"os"
	"testing"

	"dropbell/web/api"
)

func TestMain(m *testing.M) {
	api.StrictNames()
	os.Exit(m.Run())
}
