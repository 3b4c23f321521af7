(* Makes garbage for the collector: a program to try weft_gc.c.  SPDX-License-Identifier: ISC *)
external weft_gc : unit -> unit = "weft_gc"

let () =
  weft_gc ();
  let live = Array.make 1000 [] in
  for i = 1 to 300_000 do
    live.(i mod 1000) <- List.init 20 (fun x -> x + i)
  done;
  print_int (List.length live.(0));
  print_newline ()
