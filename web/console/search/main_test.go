package search_test

import (
	"testing"

	"dropbell/web/console/consoletest"
)

func TestMain(m *testing.M) { consoletest.Main(m) }
