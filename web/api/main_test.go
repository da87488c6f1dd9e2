package api_test

import (
	"os"
	"testing"

	"dropbell/web/api/pipeline"
)

func TestMain(m *testing.M) {
	pipeline.StrictNames()
	os.Exit(m.Run())
}
