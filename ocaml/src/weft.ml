(* weft.ml: libweft-record for OCaml.  SPDX-License-Identifier: ISC *)

type id = int
type site = int

type kind =
  | Wait
  | Task
  | Bind
  | Try
  | Choose
  | Pick
  | Join
  | Map
  | Condition
  | Async

let number = function
  | Wait -> 0
  | Task -> 1
  | Bind -> 2
  | Try -> 3
  | Choose -> 4
  | Pick -> 5
  | Join -> 6
  | Map -> 7
  | Condition -> 8
  | Async -> 14

external is_on : unit -> bool = "weft_ml_is_on" [@@noalloc]
external running : unit -> id = "weft_ml_running" [@@noalloc]
external make_site : string -> string -> int -> site = "weft_ml_site" [@@noalloc]
external create_by : id -> int -> site -> id = "weft_ml_create" [@@noalloc]
external label : id -> string -> unit = "weft_ml_label" [@@noalloc]
external note : id -> string -> unit = "weft_ml_note" [@@noalloc]
external should_resolve : id -> unit = "weft_ml_should_resolve" [@@noalloc]
external await : id -> id -> unit = "weft_ml_await" [@@noalloc]
external read : id -> id -> unit = "weft_ml_read" [@@noalloc]
external read_later : id -> id -> unit = "weft_ml_read_later" [@@noalloc]
external resolve : id -> id -> unit = "weft_ml_resolve" [@@noalloc]
external fail : id -> id -> string -> unit = "weft_ml_fail" [@@noalloc]
external become : id -> id -> unit = "weft_ml_become" [@@noalloc]
external signal : id -> id -> unit = "weft_ml_signal" [@@noalloc]
external run : id -> unit = "weft_ml_run" [@@noalloc]
external idle : int -> unit = "weft_ml_idle" [@@noalloc]
external resume : id -> unit = "weft_ml_resume" [@@noalloc]
external record_gc : unit -> unit = "weft_ml_record_gc"
external watch_moves : unit -> unit = "weft_ml_watch_moves"
external take_moved : unit -> bool = "weft_ml_take_moved" [@@noalloc]
external address : 'a -> int = "weft_ml_address" [@@noalloc]

let system = -1

(* ---- Sites ---- *)

let depth = 12
let own_files = [ "weft.ml"; "weft_lwt.ml" ]
let lwt_paths = [ "src/core/lwt"; "src/unix/lwt" ]
let has_prefix text prefix = String.length text >= String.length prefix && String.sub text 0 (String.length prefix) = prefix

(* Dune calls the module of a program Dune__exe__Main. *)
let shorten name =
  let prefix = "Dune__exe__" in
  if has_prefix name prefix then String.sub name (String.length prefix) (String.length name - String.length prefix) else name

(* By place in the code.  Places in the files above are no site. *)
type found = Site of site | Own | In_lwt

let sites : (Printexc.raw_backtrace_slot, found) Hashtbl.t = Hashtbl.create 64

let find_site slot =
  match Hashtbl.find_opt sites slot with
  | Some site -> site
  | None ->
    let known = Printexc.convert_raw_backtrace_slot slot in
    let site =
      match Printexc.Slot.location known with
      | Some at when List.exists (has_prefix at.filename) lwt_paths -> In_lwt
      | Some at when not (List.mem (Filename.basename at.filename) own_files) ->
        Site (make_site at.filename (shorten (Option.value (Printexc.Slot.name known) ~default:"")) at.line_number)
      | _ -> Own
    in
    Hashtbl.add sites slot site;
    site

let callback_site = ref 0

(* A function that is called last has left no trace of its caller, and Lwt is next on the stack: then the site is that of the
   callback that Lwt runs. *)
let here () =
  if not (is_on ()) then 0
  else
    let stack = Printexc.get_callstack depth in
    let rec search i =
      if i >= Printexc.raw_backtrace_length stack then 0
      else
        match find_site (Printexc.get_raw_backtrace_slot stack i) with
        | Own -> search (i + 1)
        | In_lwt -> !callback_site
        | Site site -> site
    in
    search 0

let in_callback site f =
  let before = !callback_site in
  callback_site := site;
  match f () with
  | result ->
    callback_site := before;
    result
  | exception e ->
    callback_site := before;
    raise e

let create ?by ?(site = 0) kind =
  if not (is_on ()) then 0
  else create_by (match by with Some by -> by | None -> running ()) (number kind) site

(* ---- Counters ---- *)

module Counter = struct
  external define : string -> int = "weft_ml_counter" [@@noalloc]
  external set : int -> int -> unit = "weft_ml_counter_set" [@@noalloc]

  type t = { counter : int; mutable value : int }

  let create ?(init = 0) ~name () = { counter = define name; value = init }
  let make ~name = create ~name ()

  let set_value t value =
    t.value <- value;
    set t.counter value

  (* The recorded value includes the initial one. *)
  let increase t change = set_value t (t.value + change)

  let value t = t.value
end

(* ---- Ids of values ---- *)

(* A collection moves values, so the index by address is built again after each.  An address is only a hint where to look: values
   are compared by identity. *)
module Table = struct
  let values : Obj.t Weak.t ref = ref (Weak.create 64)
  let ids = ref (Array.make 64 0)
  let free = ref []
  let used = ref 0
  let index = ref (Array.make 256 (-1)) (* slots, open addressing; the length is a power of two *)
  let indexed = ref 0

  let hash address = address lsr 3 * 0x9e3779b97f4a7 lsr 12 land (Array.length !index - 1)

  let insert address slot =
    let rec place at =
      if !index.(at) < 0 then !index.(at) <- slot else place ((at + 1) land (Array.length !index - 1))
    in
    place (hash address);
    incr indexed

  (* The second pass finds values that the first one, which allocates, has moved. *)
  let rec rebuild passes =
    let live = ref 0 in
    for slot = 0 to !used - 1 do
      if !ids.(slot) <> 0 then
        if Weak.check !values slot then incr live
        else begin
          !ids.(slot) <- 0;
          free := slot :: !free
        end
    done;
    let size = ref 256 in
    while !size < 4 * (!live + 1) do
      size := 2 * !size
    done;
    index := Array.make !size (-1);
    indexed := 0;
    ignore (take_moved ());
    for slot = 0 to !used - 1 do
      if !ids.(slot) <> 0 then
        match Weak.get !values slot with
        | Some value -> insert (address value) slot
        | None -> ()
    done;
    if passes > 1 && take_moved () then rebuild (passes - 1)

  let refresh () = if take_moved () || 2 * !indexed > Array.length !index then rebuild 2

  let rec search value at =
    match !index.(at) with
    | -1 -> 0
    | slot when !ids.(slot) <> 0 && (match Weak.get !values slot with Some other -> other == value | None -> false) ->
      !ids.(slot)
    | _ -> search value ((at + 1) land (Array.length !index - 1))

  let find value =
    let value = Obj.repr value in
    refresh ();
    match search value (hash (address value)) with
    | 0 when take_moved () ->
      rebuild 2;
      search value (hash (address value))
    | id -> id

  let grow () =
    let count = Array.length !ids in
    let larger = Weak.create (2 * count) and more = Array.make (2 * count) 0 in
    Weak.blit !values 0 larger 0 count;
    Array.blit !ids 0 more 0 count;
    values := larger;
    ids := more

  let add value id =
    let value = Obj.repr value in
    watch_moves ();
    refresh ();
    let slot =
      match !free with
      | slot :: rest ->
        free := rest;
        slot
      | [] ->
        if !used = Array.length !ids then grow ();
        incr used;
        !used - 1
    in
    Weak.set !values slot (Some value);
    !ids.(slot) <- id;
    insert (address value) slot;
    slot

  let remove slot =
    if !ids.(slot) <> 0 then begin
      !ids.(slot) <- 0;
      Weak.set !values slot None;
      free := slot :: !free
    end
end
