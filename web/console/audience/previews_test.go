package audience_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/simplifiedchinese"

	tables "dropbell/adapters/sheet"
	"dropbell/domain/job"
	"dropbell/domain/staff"
	"dropbell/web/console/consoletest"
)

// openings counts how often files are opened.
type openings struct {
	job.Tables
	opened int
}

func (c *openings) OpenTable(ctx context.Context, id int64, how job.Reading, at json.RawMessage) (job.Rows, error) {
	c.opened++
	return c.Tables.OpenTable(ctx, id, how, at)
}

// workbook has two sheets with rows; the first one is hidden.
func workbook(t *testing.T) string {
	f := excelize.NewFile()
	for _, sheet := range []string{"Members", "Former"} {
		if _, err := f.NewSheet(sheet); err != nil {
			t.Fatal(err)
		}
	}
	for cell, v := range map[string]any{"Sheet1!A1": "secret", "Members!A1": "id", "Members!B1": "name", "Members!A2": 1001, "Members!B2": "Ann", "Former!A1": "id", "Former!B1": "name",
		"Former!A2": 2001, "Former!B2": "Zoe", "Former!A3": true, "Former!B3": "Yes"} {
		sheet, at, _ := strings.Cut(cell, "!")
		if err := f.SetCellValue(sheet, at, v); err != nil {
			t.Fatal(err)
		}
	}
	f.SetActiveSheet(1)
	if err := f.SetSheetVisible("Sheet1", false); err != nil {
		t.Fatal(err)
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// The page of a workbook does not read the file again. The chosen sheet is checked and imported,
// and a TRUE cell is no user.
func TestImportChosenSheet(t *testing.T) {
	files := &openings{}
	g := consoletest.New(t)
	files.Tables = g.Files.Tables
	g.Files.Tables = files
	b := g.As(staff.Marketer)
	start := b.Upload("/users/import", "members.xlsx", workbook(t)).Is(303).Header.Get("Location")
	opened := files.opened
	b.Get(start).Is(200).Has("Sheet of the workbook", "Members", "Former", "Ann").HasNot("Zoe")
	b.Get(start+"?sheet=3").Is(200).Has("Zoe", `name="sheet" value="3"`).HasNot("Ann")
	if files.opened != opened {
		t.Errorf("the page opened the workbook %d times", files.opened-opened)
	}
	check := b.Post(start, url.Values{"sheet": {"3"}, "target0": {"id"}, "target1": {"name"}}).Is(303).Header.Get("Location")
	g.WorkPeople()
	b.Get(check).Is(200).Has("TRUE | Yes")
	id := strings.TrimPrefix(check, "/jobs/")
	b.Get(start+"?check="+id).Is(200).Has("Zoe", `name="sheet" value="3"`)
	b.Post(start+"/apply?check="+id, nil).Is(303)
	g.WorkPeople()
	if n := g.Number(`select count(*) from users where (id, name) = (2001, 'Zoe')`); n != 1 || g.Number(`select count(*) from users`) != 1 {
		t.Errorf("%d users are as the sheet says", n)
	}
	b.Get(start + "?sheet=99").Is(422)
}

// CSV as Excel saves it in China is imported completely, and staff can choose another encoding.
func TestImportGBK(t *testing.T) {
	g := consoletest.New(t)
	b := g.As(staff.Marketer)
	raw, err := simplifiedchinese.GBK.NewEncoder().String("客户编号,姓名\n1001,王小明\n1002,李婷\n")
	g.Must(err)
	start := b.Upload("/users/import", "members.csv", raw).Is(303).Header.Get("Location")
	b.Get(start).Is(200).Has("客户编号", "王小明", `<option value="gb18030" selected>`)
	b.Get(start + "?encoding=windows-1252").Is(200).Has(`<option value="windows-1252" selected>`).HasNot("王小明")
	check := b.Post(start, url.Values{"encoding": {"gb18030"}, "target0": {"id"}, "target1": {"name"}}).Is(303).Header.Get("Location")
	g.WorkPeople()
	b.Post(start+"/apply?check="+strings.TrimPrefix(check, "/jobs/"), nil).Is(303)
	g.WorkPeople()
	if n := g.Number(`select count(*) from users where (id, name) in ((1001, '王小明'), (1002, '李婷'))`); n != 2 {
		t.Errorf("%d users are as the file says", n)
	}
}

// A refused file does not stay stored, whichever form it came through.
func TestRefusedFilesAreRemoved(t *testing.T) {
	g := consoletest.New(t)
	grants := "/templates/" + strconv.FormatInt(g.Friends().ID, 10) + "/grants/new"
	b := g.As(staff.Marketer)
	var bomb bytes.Buffer
	z := zip.NewWriter(&bomb)
	w, err := z.Create("xl/media/image1.bin")
	g.Must(err)
	_, err = w.Write(make([]byte, 20<<20))
	g.Must(err)
	g.Must(z.Close())
	for _, form := range []string{"/users/import", "/segments/lists/new", grants} {
		b.Upload(form, "bomb.xlsx", bomb.String(), "name", "Fair").Is(422).Has("too large when unpacked")
	}
	if n := g.Number(`select count(*) from uploads`); n != 0 {
		t.Errorf("%d refused files stay stored", n)
	}
}

// While one workbook is read, other workbooks wait, and are refused when the wait takes too long.
// Other files are read meanwhile.
func TestOneWorkbookAtATime(t *testing.T) {
	g := consoletest.New(t)
	one := tables.Tables{Open: g.Stores.Uploads.OpenUpload, Turns: tables.NewTurns(20 * time.Millisecond)}
	g.Files.Tables = one
	b := g.As(staff.Marketer)
	file := workbook(t)
	u, err := g.Stores.Uploads.SaveUpload(t.Context(), "x.xlsx", strings.NewReader(file), 1<<20, staff.System())
	g.Must(err)
	held, err := one.OpenTable(t.Context(), u.ID, job.Reading{}, nil)
	g.Must(err)
	if a := b.Upload("/users/import", "members.xlsx", file).Is(503).Has("another workbook is being read"); a.Header.Get("Retry-After") == "" {
		t.Error("nobody says when to try again")
	}
	b.Upload("/users/import", "members.csv", "id,name\n1,x\n").Is(303)
	g.Must(held.Close())
	b.Upload("/users/import", "members.xlsx", file).Is(303)
	if n := g.Number(`select count(*) from uploads`); n != 3 {
		t.Errorf("%d files are stored, want those that were taken", n)
	}
}
